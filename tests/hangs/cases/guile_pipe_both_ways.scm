;; A pipe in both directions: sort answers at the end of its input, which stays open. Guile's garbage collector
;; handles two signals in every program.
(use-modules (ice-9 popen) (ice-9 rdelim))
(define sort-pipe (open-input-output-pipe "sort"))
(display "line\n" sort-pipe)
(force-output sort-pipe)
(display (read-line sort-pipe)) ; hangs here
