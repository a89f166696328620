"""Entry point of `gpudoctor` and `python -m gpudoctor`."""

import gc
import os
import sys


def main() -> None:
    """Run the command line and exit with its status."""
    # Starting makes some hundred thousand objects that all stay: looking for rubbish among them costs a fifth of the time.
    gc.set_threshold(100_000, 50, 50)
    # Nor are pydantic's plugins looked for, in the metadata of every package that is installed beside this one.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from gpudoctor.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
