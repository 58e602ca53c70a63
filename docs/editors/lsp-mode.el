;;; lsp-mode.el --- Memories in Emacs, with lsp-mode  -*- lexical-binding: t; -*-

;; For your init file. lsp-mode runs it as an add-on, beside the server of the language.

;;; Code:

(require 'lsp-mode)

(lsp-register-client
 (make-lsp-client
  :new-connection (lsp-stdio-connection '("sidecar" "lsp"))
  :activation-fn (lambda (file-name _mode) (and file-name t))
  :add-on? t
  :priority -2
  :server-id 'memory-sidecar
  :notification-handlers
  (let ((handlers (make-hash-table :test #'equal)))
    (puthash "sidecar/statusChanged" #'ignore handlers)
    handlers)))

(defun memory-sidecar-remember (start end)
  "Remember the text between START and END."
  (interactive "r")
  (let ((stored (lsp-request "sidecar/remember"
                             (list :content (buffer-substring-no-properties start end)
                                   :uri (lsp--buffer-uri)))))
    (message "Remembered in %s: %s" (lsp-get stored :namespace) (lsp-get stored :id))))

(provide 'memory-sidecar-lsp-mode)
;;; lsp-mode.el ends here
