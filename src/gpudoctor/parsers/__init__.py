"""One pure function per output format, text to facts; `FORMATS` lists them all."""
