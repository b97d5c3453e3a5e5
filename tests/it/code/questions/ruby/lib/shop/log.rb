class Shop::Log
  #? lib/shop.rb:Shop.logger

  def write(text)
    Shop.logger << text
  end
end
