"""The rules of a spec, one file an idea; each file has one function that yields Faults and reads nothing but the spec."""
