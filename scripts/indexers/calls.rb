# Which methods of Ruby call which while a program runs: `scripts/measure-calls ruby` packs its lines with scip.py.
#
#   CALLS_FROM=FOLDER CALLS_TO=FILE ruby -r ./calls.rb PROGRAM…
#
# At the end it adds to the file a line for each name: file, line and columns from 0, whether it is defined there, and what it
# stands for. What did not run is not said; a call through `send` or of what has another name in its line is left out.
root = File.realpath(ENV.fetch("CALLS_FROM")) + "/"
lines = Hash.new { |all, path| all[path] = File.readlines(path, encoding: "UTF-8") }
seen = {}
saw = TracePoint.new(:call) do |it|
  next unless it.path.start_with?(root)
  at = caller_locations(2, 2).find { |place| place.label != "new" }
  next unless at && at.path.start_with?(root)
  seen[[at.path, at.lineno, it.callee_id, it.path, it.lineno, it.method_id]] = true
end
at_exit do
  saw.disable
  pid = Process.pid
  File.open("#{ENV.fetch("CALLS_TO")}.#{pid}", "w") do |out|
    said = lambda do |path, number, name, kind, symbol|
      line = lines[path][number - 1] or next
      found = line.match(/(?<![A-Za-z0-9_])#{Regexp.escape(name)}(?![A-Za-z0-9_])/) or next
      from = line[0, found.begin(0)].encode("UTF-16LE").bytesize / 2
      out.puts [path.delete_prefix(root), number - 1, from, from + name.size, kind, symbol].join("\t")
    rescue ArgumentError
      next
    end
    seen.each_key do |path, number, called, of, at, name|
      symbol = "#{of.delete_prefix(root)}:#{at}:#{name}"
      said.call(path, number, name == :initialize ? "new" : called.to_s, "uses", symbol)
      said.call(of, at, name.to_s, "defines", symbol)
    end
  end
end
saw.enable
