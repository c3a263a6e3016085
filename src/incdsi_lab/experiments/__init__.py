"""The experiments of the study, one module each: `tasks` to run, `section` to report."""
