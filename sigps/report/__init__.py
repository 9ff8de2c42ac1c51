"""What a run tells of itself: a page to look at, and files for other tools."""
