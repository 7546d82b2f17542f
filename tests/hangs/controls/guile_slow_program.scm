;; Reads the output of a program that writes late.
(use-modules (ice-9 popen) (ice-9 rdelim))
(define program (open-input-pipe (string-append "sleep " (cadr (command-line)) "; echo done")))
(display (read-line program))
(newline)
