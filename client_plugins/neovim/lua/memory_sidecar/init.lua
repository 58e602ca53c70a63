-- What users call: `setup` once, `statusline` in a status line.

local server = require("memory_sidecar.server")
local text = require("memory_sidecar.text")

local M = {}

--- Start the language server for files that are opened. Settings: :help memory-sidecar-settings.
function M.setup(given)
  local settings, wrong = text.settings(given)
  if settings == nil then
    error("memory_sidecar.setup: " .. wrong, 2)
  end
  return server.enable(settings)
end

--- Return a short text for a status line: the number of memories, or that the sidecar is away.
function M.statusline()
  return text.statusline(server.status)
end

return M
