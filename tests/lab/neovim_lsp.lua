-- A user without the plugin, in a headless Neovim from 0.7 on: starts the language server, looks, and runs a command.
-- SEEN names the file for what was seen, SERVER the server's words as JSON, SOURCE the file to open.

local seen = { messages = {} }

vim.notify = function(message)
  table.insert(seen.messages, message)
end

local function wait_for(what, is_so)
  if not vim.wait(30000, is_so, 20) then
    error("waited in vain for " .. what .. ": " .. vim.inspect(seen))
  end
end

local source = vim.env.SOURCE
local root = vim.fn.fnamemodify(source, ":h")
vim.cmd("edit " .. source)
local client_id = vim.lsp.start_client({
  name = "memory-sidecar",
  cmd = vim.fn.json_decode(vim.env.SERVER),
  root_dir = root,
  handlers = {
    ["sidecar/statusChanged"] = function(_, status)
      seen.state = status.state
    end,
  },
})
vim.lsp.buf_attach_client(0, client_id)
local client
wait_for("the server", function()
  client = vim.lsp.get_client_by_id(client_id)
  return client ~= nil and client.initialized and client.server_capabilities ~= nil
end)

local function ask(method, params)
  local answer = vim.lsp.buf_request_sync(0, method, params, 30000)[client_id]
  assert(answer and not answer.err and not answer.error, method .. ": " .. vim.inspect(answer))
  return answer.result
end

local document = { textDocument = vim.lsp.util.make_text_document_params() }
seen.encoding = client.offset_encoding
seen.stored = ask("workspace/executeCommand", {
  command = "sidecar.remember",
  arguments = { { content = "deploy_window is in hours.", uri = document.textDocument.uri, quiet = true } },
})
wait_for("the status", function()
  return seen.state == "running"
end)
-- Behind an emoji, where bytes, UTF-16 units and characters differ.
local column = vim.fn.getline(1):find("deploy_window")
vim.api.nvim_win_set_cursor(0, { 1, column })
local position = vim.lsp.util.make_position_params(0, client.offset_encoding)
local hover = ask("textDocument/hover", position)
seen.hover = vim.lsp.util.convert_input_to_markdown_lines(hover.contents)
seen.lens = ask("textDocument/codeLens", document)[1].command.title
vim.lsp.buf.execute_command({ command = "sidecar.status" })
wait_for("the message", function()
  return #seen.messages > 0 or vim.fn.execute("messages"):find("The sidecar is running") ~= nil
end)
client.stop()
vim.fn.writefile({ vim.fn.json_encode(seen) }, vim.env.SEEN)
vim.cmd("qall!")
