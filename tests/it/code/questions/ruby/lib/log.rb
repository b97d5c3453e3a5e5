class Log
  def self.say(text) = puts(text)

  #? lib/log.rb:Log.say

  def write(text)
    Log.say(text)
  end
end
