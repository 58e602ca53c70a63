;;; eglot.el --- Memories in Emacs, with Eglot  -*- lexical-binding: t; -*-

;; For your init file. Needs Emacs 29, or Eglot from GNU ELPA.
;;
;; Eglot talks to one server a major mode. Name here the modes in which memories are worth more to you than another server,
;; such as those that have none; for both at once use lsp-mode, see lsp-mode.el.

;;; Code:

(require 'eglot)

(defvar memory-sidecar-modes '(text-mode markdown-mode conf-mode sh-mode)
  "Major modes in which Eglot talks to the memory sidecar.")

(add-to-list 'eglot-server-programs
             (cons memory-sidecar-modes '("sidecar" "lsp")))

(defun memory-sidecar--ask (method params)
  "Send METHOD with PARAMS, a plist, to the server of this buffer; return the answer."
  (jsonrpc-request (or (eglot-current-server) (user-error "Eglot manages no server here"))
                   method params :timeout 30))

(defun memory-sidecar--uri ()
  "Return the URI of this buffer's file."
  (funcall (if (fboundp 'eglot-path-to-uri) 'eglot-path-to-uri 'eglot--path-to-uri) buffer-file-name))

(defun memory-sidecar-remember (start end)
  "Remember the text between START and END."
  (interactive "r")
  (let ((stored (memory-sidecar--ask
                 :sidecar/remember
                 (list :content (buffer-substring-no-properties start end)
                       :uri (memory-sidecar--uri)))))
    (message "Remembered in %s: %s" (plist-get stored :namespace) (plist-get stored :id))))

(defun memory-sidecar-recall (query)
  "Show the memories that bear on QUERY."
  (interactive "sRecall: ")
  (let ((found (memory-sidecar--ask :sidecar/recall (list :query query))))
    (with-help-window "*memories*"
      (seq-doseq (memory (plist-get found :memories))
        (princ (format "%s  %s, %s\n\n%s\n\n"
                       (plist-get memory :id) (plist-get memory :type)
                       (plist-get memory :age) (plist-get memory :content)))))))

(provide 'memory-sidecar-eglot)
;;; eglot.el ends here
