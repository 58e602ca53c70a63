;;; eglot_session.el --- A user of Eglot, in batch mode  -*- lexical-binding: t; -*-

;; Loads the configuration of docs/editors, opens the file that SOURCE names, remembers a line, recalls it and hovers.

;;; Code:

(package-initialize)
(require 'eglot)
(load (getenv "CONFIGURATION"))
;; As a user with a program of another name would.
(setcdr (assoc memory-sidecar-modes eglot-server-programs)
        (append (json-parse-string (getenv "SERVER") :array-type 'list) nil))

(find-file (getenv "SOURCE"))
(text-mode)
(apply #'eglot (eglot--guess-contact))
(unless (eglot-current-server) (error "Eglot manages no server"))
(memory-sidecar-remember (point-min) (line-end-position))
(memory-sidecar-recall "deploy_window")
(with-current-buffer "*memories*"
  (unless (string-match-p "deploy_window = 3" (buffer-string)) (error "Recall shows %s" (buffer-string))))
(goto-char (point-min))
(search-forward "deploy_")
(let ((hover (jsonrpc-request (eglot-current-server) :textDocument/hover (eglot--TextDocumentPositionParams))))
  (message "HOVER %s" (replace-regexp-in-string "\n" " " (plist-get (plist-get hover :contents) :value))))
(eglot-shutdown (eglot-current-server))
;;; eglot_session.el ends here
