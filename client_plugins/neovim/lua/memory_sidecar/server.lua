-- Starts `sidecar lsp` beside other language servers, asks it, and keeps what it last told of itself.

local text = require("memory_sidecar.text")

local M = {}

local NAME = "memory_sidecar"
local ROOT_MARKERS = { ".git", ".hg", ".jj" }

--- What the server told last; nothing before that.
M.status = nil

--- The program that is started, once `enable` was called.
M.program = nil

-- The client that was asked last, for buffers that have none.
local last_client_id = nil

local function tell(message)
  vim.notify("memory-sidecar: " .. message, vim.log.levels.WARN)
end

local function take_status(status)
  if type(status) == "table" and type(status.state) == "string" then
    M.status = status
    vim.cmd("redrawstatus")
  end
end

local function clients()
  local get = vim.lsp.get_clients or vim.lsp.get_active_clients
  return get({ name = NAME })
end

local function send(client, method, params, handler)
  if vim.fn.has("nvim-0.11") == 1 then
    return client:request(method, params, handler)
  end
  return client.request(method, params, handler)
end

-- The client of the buffer if there is one, else the one before: memories can be asked for from a terminal or a
-- scratch buffer too.
local function client_for(bufnr)
  local found = clients()
  for _, client in ipairs(found) do
    if vim.lsp.buf_is_attached(bufnr, client.id) then
      last_client_id = client.id
      return client
    end
  end
  for _, client in ipairs(found) do
    if client.id == last_client_id then
      return client
    end
  end
  return found[1]
end

-- The folder of the project that a buffer belongs to; nothing for buffers that are no file on a disk.
local function root_of(bufnr)
  local name = vim.api.nvim_buf_get_name(bufnr)
  if vim.bo[bufnr].buftype ~= "" or name == "" or name:find("^%a[%w+.-]+://") then
    return nil
  end
  local folder = vim.fs.dirname(name)
  local marker = vim.fs.find(ROOT_MARKERS, { upward = true, path = folder })[1]
  return marker and vim.fs.dirname(marker) or folder
end

local function refresh_code_lens(bufnr)
  if vim.fn.has("nvim-0.10") == 1 then
    vim.lsp.codelens.refresh({ bufnr = bufnr })
  else
    vim.api.nvim_buf_call(bufnr, vim.lsp.codelens.refresh)
  end
end

local function ask_status(client)
  send(client, "sidecar/status", vim.empty_dict(), function(_, status)
    take_status(status)
  end)
end

local function on_attach(settings)
  return function(client, bufnr)
    ask_status(client)
    if settings.code_lens then
      refresh_code_lens(bufnr)
      vim.api.nvim_create_autocmd("BufWritePost", {
        group = vim.api.nvim_create_augroup("memory_sidecar_lens_" .. bufnr, { clear = true }),
        buffer = bufnr,
        callback = function()
          refresh_code_lens(bufnr)
        end,
      })
    end
  end
end

local function config(settings)
  return {
    cmd = settings.cmd,
    init_options = text.initialization_options(settings),
    on_attach = on_attach(settings),
    on_exit = function()
      M.status = nil

--- The program that is started, once `enable` was called.
M.program = nil

-- The client that was asked last, for buffers that have none.
local last_client_id = nil
    end,
    handlers = {
      ["sidecar/statusChanged"] = function(_, status)
        take_status(status)
      end,
    },
  }
end

-- Neovim 0.8 to 0.10 start a server for each buffer by hand.
local function start_for_buffers(settings)
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile" }, {
    group = vim.api.nvim_create_augroup("memory_sidecar_start", { clear = true }),
    callback = function(event)
      local root = root_of(event.buf)
      if root then
        vim.api.nvim_buf_call(event.buf, function()
          vim.lsp.start(vim.tbl_extend("force", config(settings), { name = NAME, root_dir = root }))
        end)
      end
    end,
  })
end

--- Start the server for the files that are opened from now on. False, with a message, if it cannot be started.
function M.enable(settings)
  local program = settings.cmd[1]
  M.program = program
  if vim.fn.executable(program) == 0 then
    tell(
      ("%s is no program that can be started. Install memory-sidecar, or set cmd to its full path; "):format(program)
        .. "see :help memory-sidecar-settings"
    )
    return false
  end
  if vim.lsp.config and vim.lsp.enable then
    local own = config(settings)
    own.root_dir = function(bufnr, start_in)
      local root = root_of(bufnr)
      if root then
        start_in(root)
      end
    end
    vim.lsp.config(NAME, own)
    vim.lsp.enable(NAME)
  else
    start_for_buffers(settings)
  end
  return true
end

--- Ask the server; `answered` is called with the result. A failure is told and calls nothing.
function M.ask(method, params, answered)
  local client = client_for(vim.api.nvim_get_current_buf())
  if client == nil then
    tell("no language server is running. Open a file first; :checkhealth memory_sidecar tells more")
    return
  end
  if next(params) == nil then
    params = vim.empty_dict()
  end
  send(client, method, params, function(err, result)
    if err then
      tell(text.failure(err))
      return
    end
    answered(result)
  end)
end

--- Change something; as `ask`, and the status is asked for afterwards, for the number of memories in it.
function M.change(method, params, answered)
  M.ask(method, params, function(result)
    answered(result)
    local client = client_for(vim.api.nvim_get_current_buf())
    if client then
      ask_status(client)
    end
  end)
end

--- Return where the current buffer is, for requests that go by project; empty for a buffer that is no file.
function M.place()
  return root_of(0) and { uri = vim.uri_from_bufnr(0) } or {}
end

--- Tell whether a server runs, for :checkhealth.
function M.is_running()
  return #clients() > 0
end

return M
