"""`python -m sigps` is the command `sigps`."""

from sigps.cli.main import main

if __name__ == "__main__":
    main()
