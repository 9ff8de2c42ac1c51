"""What a run takes in bytes, kept and moved: formulas of counts."""
