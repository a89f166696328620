"""The interactive screens. Textual is imported only when they run; nothing here imports how a report is made."""
