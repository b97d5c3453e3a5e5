require "shop/helpers"

#? lib/shop/helpers.rb:twice lib/shop/store.rb:Shop.Store lib/shop/store.rb:Shop.Store.again lib/shop/store.rb:Shop.Store.size

def import(path)
  twice(path)
  store = path ? Shop::Store.new : Shop::Store.new
  store.again
  store.size
  store.each(&:freeze)
end
