def shorten(text, most = 3)
  text[0, most]
end

#? lib/shop/helpers.rb:shorten

def twice(text)
  local = shorten(text)
  local * 2
end
