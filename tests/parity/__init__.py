"""What our check says of a JobSet, held against what the real API server says of it, of its child Jobs and of their pods."""
