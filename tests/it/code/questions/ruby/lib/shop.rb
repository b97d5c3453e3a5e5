# frozen_string_literal: true

require "json"
require_relative "shop/helpers"

module Shop
  autoload :Store, "shop/store"

  LIMIT = 3

  class << self
    attr_accessor :logger

    #? lib/shop.rb:Shop.settings lib/shop/store.rb:Shop.Store lib/shop/store.rb:Shop.Store.put

    def setup(all)
      store = Store.new(settings)
      all.each { |it| store.put(it) }
      store
    end

    def settings = { "limit" => LIMIT }
  end

  #? lib/shop/store.rb:Shop.Store.open

  def self.run(path)
    Shop::Store.open(path)
  end
end
