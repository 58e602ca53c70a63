-- A user's session in a headless Neovim. Run by `nvim --clean -l` with the plugin's folder, the file to open, the server's
-- words as JSON, whether the editor is to behave like one before 0.11, and the file for what was seen.

local plugin, file, server_words, is_old, report = unpack(_G.arg)
local seen = { said = {}, chosen = {} }

vim.notify = function(message)
  table.insert(seen.said, message)
end
vim.ui.select = function(items, options, done)
  for _, item in ipairs(items) do
    table.insert(seen.chosen, (options.format_item or tostring)(item))
  end
  done(items[1])
end

local function wait_for(what, is_so)
  if not vim.wait(30000, is_so, 20) then
    seen.said[#seen.said + 1] = "waited in vain for " .. what
    error(what .. ": " .. vim.inspect(seen))
  end
end

local function wait_said(words)
  local pattern = vim.pesc(words)
  wait_for(words, function()
    return #seen.said > 0 and seen.said[#seen.said]:find(pattern) ~= nil
  end)
end

local function buffer_lines()
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

if is_old == "old" then
  vim.lsp.config, vim.lsp.enable = nil, nil
end
vim.opt.runtimepath:prepend(plugin)
vim.cmd("runtime plugin/memory_sidecar.lua")
local memory_sidecar = require("memory_sidecar")
seen.before = memory_sidecar.statusline()
seen.unstartable = memory_sidecar.setup({ cmd = { "no-such-program-anywhere" } })
assert(memory_sidecar.setup({ cmd = vim.json.decode(server_words), namespace = "project:shop" }))
vim.cmd.edit(file)
wait_for("a running sidecar", function()
  return memory_sidecar.statusline():find("^mem %d") ~= nil
end)
seen.at_first = memory_sidecar.statusline()
seen.server_count = #(vim.lsp.get_clients or vim.lsp.get_active_clients)({ name = "memory_sidecar" })

vim.cmd("1,2SidecarRemember Deploys go out on Tuesday.")
wait_said("remembered in project:shop")
wait_for("the count to follow", function()
  return memory_sidecar.statusline() ~= seen.at_first
end)
seen.after_remember = memory_sidecar.statusline()

vim.cmd("SidecarRecall when do deploys go out?")
wait_for("the memory's buffer", function()
  return vim.b.memory_sidecar ~= nil
end)
seen.document = buffer_lines()
seen.is_writable = vim.bo.modifiable
vim.cmd("SidecarForget")
wait_said("brings it back")
wait_for("the count to go back", function()
  return memory_sidecar.statusline() == seen.at_first
end)
vim.cmd("SidecarForget!")
wait_said("restored mem_")
vim.cmd("SidecarStatus")
wait_said("namespace project:shop")
vim.cmd("SidecarForget mem_00000000000000000000000009")
wait_said("mem_00000000000000000000000009")
vim.cmd("SidecarInsights")
wait_for("the insights", function()
  return vim.b.memory_sidecar == "insights"
end)
seen.insights = buffer_lines()
vim.cmd("checkhealth memory_sidecar")
seen.health = buffer_lines()
vim.fn.writefile({ vim.json.encode(seen) }, report)
vim.cmd("qa!")
