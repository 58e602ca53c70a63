-- Defines the commands. Nothing is loaded before one is used.

if vim.g.loaded_memory_sidecar then
  return
end
vim.g.loaded_memory_sidecar = true

if vim.fn.has("nvim-0.8") == 0 then
  vim.notify("memory-sidecar: needs Neovim 0.8 or newer", vim.log.levels.WARN)
  return
end

local function define(name, step, options)
  vim.api.nvim_create_user_command(name, function(call)
    require("memory_sidecar.commands")[step](call)
  end, options)
end

define("SidecarRemember", "remember", { range = true, nargs = "*", desc = "Remember the range, or a sentence" })
define("SidecarRecall", "recall", { nargs = "*", desc = "Recall memories" })
define("SidecarForget", "forget", { nargs = "?", bang = true, desc = "Forget a memory; with ! bring it back" })
define("SidecarStatus", "status", { desc = "Tell whether the sidecar runs" })
define("SidecarInsights", "insights", { desc = "Show how often memories helped" })
