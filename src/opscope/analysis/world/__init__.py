"""Many ranks as one object: which of them compute the same, what each takes, and what they send each other."""
