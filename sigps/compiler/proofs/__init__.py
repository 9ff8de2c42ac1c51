"""What is proved of a program, so that an engine may run it in a cheaper way."""
