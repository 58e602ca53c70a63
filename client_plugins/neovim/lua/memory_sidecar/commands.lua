-- The commands' steps: what is asked of the user, what of the server, and what is shown.

local server = require("memory_sidecar.server")
local text = require("memory_sidecar.text")

local M = {}

local INSIGHT_DAYS = 30
local RECALL_LIMIT = 20

local function say(message)
  vim.notify("memory-sidecar: " .. message, vim.log.levels.INFO)
end

-- A buffer that cannot be written, and in which nothing that a memory says is taken for a modeline.
local function show(name, lines)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.bo[bufnr].modeline = false
  vim.bo[bufnr].bufhidden = "wipe"
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].modifiable = false
  vim.cmd("botright split")
  vim.api.nvim_win_set_buf(0, bufnr)
  vim.b[bufnr].memory_sidecar = name
  vim.keymap.set("n", "q", "<cmd>close<cr>", { buffer = bufnr, desc = "Close" })
end

local function store(content, place)
  vim.ui.select(text.TYPES, { prompt = "What kind of thing is it?" }, function(type)
    if type == nil then
      return
    end
    local params = vim.tbl_extend("force", place, { content = content, type = type })
    server.change("sidecar/remember", params, function(stored)
      say(text.stored_sentence(stored))
    end)
  end)
end

--- Remember the range, with a sentence about it; without a range, the sentence alone.
function M.remember(call)
  local lines = call.range > 0 and vim.api.nvim_buf_get_lines(0, call.line1 - 1, call.line2, false) or {}
  local place = server.place()
  local function with_sentence(sentence)
    local content = sentence and text.content(sentence, lines)
    if content then
      store(content, place)
    end
  end
  if call.args ~= "" then
    with_sentence(call.args)
  else
    vim.ui.input({ prompt = #lines > 0 and "A sentence about it (may be empty): " or "Remember: " }, with_sentence)
  end
end

--- Recall what bears on a query, and open what is chosen.
function M.recall(call)
  local place = server.place()
  local function ask(query)
    if query == nil or not query:find("%S") then
      return
    end
    local params = vim.tbl_extend("force", place, { query = query, limit = RECALL_LIMIT })
    server.ask("sidecar/recall", params, function(answer)
      local limits = type(answer.degraded) == "string" and " (limited: " .. answer.degraded .. ")" or ""
      if #answer.memories == 0 then
        say("nothing is known about that" .. limits)
        return
      end
      local options = {
        prompt = ("%d found%s"):format(#answer.memories, limits),
        format_item = function(memory)
          return text.label(memory) .. "  [" .. text.description(memory) .. "]"
        end,
      }
      vim.ui.select(answer.memories, options, function(memory)
        if memory then
          show(memory.id, text.document(memory))
        end
      end)
    end)
  end
  if call.args ~= "" then
    ask(call.args)
  else
    vim.ui.input({ prompt = "Recall: " }, ask)
  end
end

--- Forget the memory whose id is given or stands in the line of the cursor; with a bang, bring it back.
function M.forget(call)
  local id = text.find_id(call.args ~= "" and call.args or vim.api.nvim_get_current_line())
  if id == nil then
    vim.notify(
      "memory-sidecar: there is no id of a memory (mem_ and 26 characters) in the argument or in this line",
      vim.log.levels.WARN
    )
    return
  end
  if call.bang then
    server.change("sidecar/restore", { id = id }, function(answer)
      say("restored " .. table.concat(answer.restored, ", "))
    end)
    return
  end
  server.change("sidecar/forget", { id = id }, function(answer)
    say(("forgot %s; :SidecarForget! %s brings it back"):format(table.concat(answer.forgotten, ", "), id))
  end)
end

function M.status()
  server.ask("sidecar/status", {}, function(status)
    say(text.status_sentence(status))
  end)
end

function M.insights()
  server.ask("sidecar/insights", { days = INSIGHT_DAYS }, function(answer)
    show("insights", text.insights(answer.figures, INSIGHT_DAYS))
  end)
end

return M
