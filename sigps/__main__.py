"""`python -m sigps` is the command `sigps`."""

from sigps.cli import main

if __name__ == "__main__":
    main()
