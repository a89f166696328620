"""Before a training run: will this machine train on its GPU, and well?"""
