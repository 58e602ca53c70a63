;;; lsp_mode_session.el --- A user of lsp-mode, in batch mode  -*- lexical-binding: t; -*-

;; Loads the configuration of docs/editors, opens the file that SOURCE names, remembers its first line and hovers there.

;;; Code:

(package-initialize)
(require 'lsp-mode)
(require 'cl-lib)
(load (getenv "CONFIGURATION"))
;; As a user with a program of another name would.
(setf (lsp--client-new-connection (gethash 'memory-sidecar lsp-clients))
      (lsp-stdio-connection (append (json-parse-string (getenv "SERVER") :array-type 'list) nil)))
(setq lsp-auto-guess-root t
      lsp-enable-suggest-server-download nil
      lsp-session-file (make-temp-file "lsp-session"))

(find-file (getenv "SOURCE"))
(text-mode)
(lsp)
(let ((deadline (+ (float-time) 30)))
  (while (not (and (lsp-workspaces) (eq 'initialized (lsp--workspace-status (car (lsp-workspaces))))))
    (when (> (float-time) deadline) (error "lsp-mode waited in vain for the server"))
    (accept-process-output nil 0.05)))
(memory-sidecar-remember (point-min) (line-end-position))
(goto-char (point-min))
(search-forward "deploy_")
(let ((hover (lsp-request "textDocument/hover" (lsp--text-document-position-params))))
  (message "HOVER %s" (replace-regexp-in-string "\n" " " (lsp-get (lsp-get hover :contents) :value))))
;;; lsp_mode_session.el ends here
