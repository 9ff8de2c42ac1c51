"""What users declare: `Vertex`, its fields, and what a class body says."""
