-- :checkhealth memory_sidecar

local M = {}

function M.check()
  local health = vim.health
  -- Neovim 0.8 and 0.9 have the older names.
  local start, ok, warn = health.start or health.report_start, health.ok or health.report_ok, health.warn or health.report_warn
  local server = require("memory_sidecar.server")
  local text = require("memory_sidecar.text")
  start("memory-sidecar")
  local program = server.program or "sidecar"
  if vim.fn.executable(program) == 1 then
    ok("the program is " .. vim.fn.exepath(program))
  else
    warn(program .. " is no program that can be started; the setting cmd can name its full path")
  end
  if not server.is_running() then
    warn("no language server is running: call require('memory_sidecar').setup() and open a file; :LspLog tells why not")
  elseif server.status == nil then
    warn("the language server has told nothing of the sidecar yet")
  elseif server.status.state == "running" then
    ok(text.status_sentence(server.status))
  else
    warn(text.status_sentence(server.status) .. "; `sidecar status` in a shell tells more")
  end
end

return M
