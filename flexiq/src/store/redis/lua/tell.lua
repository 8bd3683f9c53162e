-- tell: keeps what running jobs tell of themselves. A run that is not this worker's newest any more changes nothing.
-- ARGV  4 worker, then two of each run: job and run, and its notes
local worker, ids, marked = ARGV[4], {}, {}
for i = 5, #ARGV, 2 do
  ids[#ids + 1] = string.sub(ARGV[i], 1, 16)
end
for i, text in ipairs(read_fields(runs, ids)) do
  local lease, notes = ARGV[3 + 2 * i], ARGV[4 + 2 * i]
  if text and is_held(text, string.sub(lease, 17, 20) .. worker) then
    of_story().keep_notes(ids[i], notes)
    if not has_story(text) then
      marked[#marked + 1] = ids[i]
      marked[#marked + 1] = text .. tail_with_story('')
    end
  end
end
call_in_pieces('HSET', runs, marked)
if story then story.write() end
