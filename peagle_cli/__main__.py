"""`python -m peagle_cli` and the `peagle` command."""

from peagle_cli.cli.app import main

if __name__ == "__main__":
    main()
