"""Entry point of `gpudoctor` and `python -m gpudoctor`."""

import sys


def main() -> None:
    """Run the command line and exit with its status."""
    from gpudoctor.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
