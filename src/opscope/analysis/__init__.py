"""Graph -> tables and summaries. Analyses read graphs; they never write on them."""
