"""What a study says: tables, figures, and one page that holds them all."""
