# frozen_string_literal: true

module Shop
  # Keeps things.
  class Store < Base
    include Comparable
    include Countable

    attr_reader :size, :log

    #? lib/shop/log.rb:Shop.Log lib/shop/base.rb:Shop.Base.initialize

    def initialize(settings = {}, log: nil)
      super()
      @settings = settings
      @log = Log.new(settings)
      @size = 0
    end

    #? lib/shop/store.rb:Shop.Store lib/shop/store.rb:Shop.Store.load

    def self.open(path)
      new.load(path)
    end

    #? lib/shop/store.rb:Shop.Store.check lib/shop/log.rb:Shop.Log.write lib/shop/errors/missing.rb:Shop.Errors.Missing

    def put(thing)
      check(thing)
      @log.write(thing)
      raise Errors::Missing.new(thing) if thing.nil?

      @size += 1
    end

    #? lib/shop/log.rb:Shop.Log.write lib/shop/store.rb:Shop.Store.put lib/shop/store.rb:Shop.Store.log

    def load(path)
      log.write(path)
      [1, 2].each { |n| put n }
      self
    end

    #? lib/shop/base.rb:Shop.Base.touch lib/shop/countable.rb:Shop.Countable.total

    def again
      touch
      total + @size
    end

    #? lib/shop/base.rb:Shop.Base.close

    def close
      super
    end

    #? lib/shop/store.rb:Shop.Store.<=>

    def compare(other)
      send(:<=>, other)
    end

    def <=>(other) = size <=> other.size

    #? lib/shop/store.rb:Shop.Store.put

    alias_method :add, :put

    #? lib/shop/store.rb:Shop.Store.check

    define_method(:checked) do |thing|
      self.check(thing)
    end

    private

    def check(thing)
      thing
    end
  end
end
