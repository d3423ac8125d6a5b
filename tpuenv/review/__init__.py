"""Plans: their changes as text, the records of a review, and the comparison of a plan with its record."""
