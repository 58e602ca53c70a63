-- How memories read, what the user may set and what commands are given. Pure Lua: no `vim`, so that any Lua can test it.

local M = {}

local LABEL_LENGTH = 100
local ID_PATTERN = "mem_%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w"

--- Types offered when something is remembered, most usual first.
M.TYPES = { "fact", "decision", "convention", "gotcha", "pattern", "preference", "reference", "open_question" }

M.DEFAULTS = {
  cmd = { "sidecar", "lsp" },
  home = "",
  namespace = "",
  hover = true,
  code_lens = true,
  file_activity = true,
}

-- JSON's null comes as a value of its own, so that `nil` is not the only way to be absent.
local function number_or(value, other)
  return type(value) == "number" and value or other
end

local function text_or(value, other)
  return type(value) == "string" and value ~= "" and value or other
end

-- Counts characters, not bytes: cutting inside of one would leave broken UTF-8.
local function cut(text, length)
  local count = 0
  for position in text:gmatch("()[%z\1-\127\194-\244][\128-\191]*") do
    count = count + 1
    if count > length then
      return text:sub(1, position - 1) .. "…"
    end
  end
  return text
end

--- Return the lines of a text; no line holds a newline or a NUL.
function M.lines(text)
  local lines = {}
  for line in (text:gsub("%z", "") .. "\n"):gmatch("(.-)\r?\n") do
    lines[#lines + 1] = line
  end
  return lines
end

--- Return the first line that says something.
function M.label(memory)
  for _, line in ipairs(M.lines(memory.content)) do
    local text = line:match("^%s*(.-)%s*$")
    if text ~= "" then
      return cut(text, LABEL_LENGTH)
    end
  end
  return "(blank)"
end

--- Say what is known of use; being shown is not being useful.
function M.usefulness(usefulness)
  local parts = {}
  if usefulness.used > 0 then
    parts[#parts + 1] = ("used %d×"):format(usefulness.used)
  end
  if usefulness.misled > 0 then
    parts[#parts + 1] = ("misled %d×"):format(usefulness.misled)
  end
  if #parts > 0 then
    return table.concat(parts, ", ")
  end
  return usefulness.shown > 0 and ("shown %d×, use not seen"):format(usefulness.shown) or "not shown yet"
end

--- Return age, use and marks in one line.
function M.description(memory)
  local parts = { memory.age, M.usefulness(memory.usefulness) }
  for _, mark in ipairs({ "golden", "disputed", "superseded" }) do
    if memory[mark] == true then
      parts[#parts + 1] = mark
    end
  end
  return table.concat(parts, " · ")
end

--- Return a memory as the lines of a buffer.
function M.document(memory)
  local lines = {
    ("%s  %s  %s"):format(memory.id, memory.type, memory.namespace),
    ("%s, importance %.2f, rank × %.2f"):format(
      M.description(memory),
      memory.importance,
      memory.usefulness.multiplier
    ),
    "",
  }
  for _, line in ipairs(M.lines(memory.content)) do
    lines[#lines + 1] = line
  end
  return lines
end

--- Return insights as the lines of a buffer, each figure with what it rests on.
function M.insights(figures, days)
  local lines = { ("How often memories helped, last %d days"):format(days) }
  for _, figure in ipairs(figures) do
    local value = type(figure.value) == "number" and ("%.3g"):format(figure.value) or "not known yet"
    lines[#lines + 1] = ""
    lines[#lines + 1] = figure.label .. ": " .. value
    lines[#lines + 1] = ("    %d of %d"):format(figure.numerator, figure.denominator)
    local proxy = text_or(figure.proxy, nil)
    if proxy then
      lines[#lines + 1] = "    stands for: " .. proxy
    end
  end
  return lines
end

--- Return what the status line shows; nothing while nothing is known. It holds no `%`, which would be a command there.
function M.statusline(status)
  if status == nil then
    return ""
  end
  if status.state == "running" then
    local count = number_or(status.memories, nil)
    return count and ("mem %d"):format(count) or "mem"
  end
  return status.state == "starting" and "mem …" or "mem away"
end

--- Return the status in a sentence.
function M.status_sentence(status)
  local parts = { "The memory sidecar is " .. status.state }
  if type(status.version) == "string" then
    parts[1] = parts[1] .. " (" .. status.version .. ")"
  end
  if type(status.memories) == "number" then
    parts[#parts + 1] = status.memories == 1 and "1 memory" or ("%d memories"):format(status.memories)
  end
  parts[#parts + 1] = "namespace " .. status.namespace
  if text_or(status.message, nil) then
    parts[#parts + 1] = status.message
  end
  return table.concat(parts, ", ")
end

--- Join a sentence and the lines it is about; nothing if both are blank.
function M.content(sentence, lines)
  local text = table.concat(lines or {}, "\n")
  sentence = (sentence or ""):match("^%s*(.-)%s*$")
  if not text:find("%S") then
    return sentence ~= "" and sentence or nil
  end
  return sentence ~= "" and sentence .. "\n\n" .. text or text
end

--- Say what became of a text that was to be remembered, and which kinds of secrets were taken out of it.
function M.stored_sentence(stored)
  local what = stored.created and "remembered" or "already known"
  local sentence = ("%s in %s: %s"):format(what, stored.namespace, stored.id)
  if type(stored.redacted) == "table" and #stored.redacted > 0 then
    return sentence .. "; taken out: " .. table.concat(stored.redacted, ", ")
  end
  return sentence
end

--- Return the first id of a memory in a text, or nothing.
function M.find_id(text)
  -- The frontier keeps a longer word from being taken for an id.
  return text:match("%f[%w_](" .. ID_PATTERN .. ")%f[^%w_]")
end

--- Say what a failed request means: the message and, if there is one, the remedy.
function M.failure(err)
  local message = text_or(err.message, "the request failed")
  local data = type(err.data) == "table" and err.data or {}
  local remedy = text_or(data.remedy, nil)
  return remedy and message .. ". " .. remedy or message
end

--- Return the settings with defaults filled in, or nothing and what is wrong.
function M.settings(given)
  local settings = {}
  for name, default in pairs(M.DEFAULTS) do
    settings[name] = default
  end
  for name, value in pairs(given or {}) do
    local default = M.DEFAULTS[name]
    if default == nil then
      return nil, ("there is no setting %q; see :help memory-sidecar-settings"):format(tostring(name))
    end
    if type(value) ~= type(default) then
      return nil, ("the setting %s takes a %s, not a %s"):format(name, type(default), type(value))
    end
    settings[name] = value
  end
  if type(settings.cmd[1]) ~= "string" then
    return nil, "the setting cmd takes a list of words, such as { 'sidecar', 'lsp' }"
  end
  return settings
end

--- Return what the language server is started with; what is not set is left out.
function M.initialization_options(settings)
  return {
    home = text_or(settings.home, nil),
    namespace = text_or(settings.namespace, nil),
    hover = settings.hover,
    codeLens = settings.code_lens,
    fileActivity = settings.file_activity,
  }
end

return M
