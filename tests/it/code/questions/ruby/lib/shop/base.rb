module Shop
  class Base
    def initialize; end

    #? lib/shop/helpers.rb:shorten

    def touch
      shorten("touched")
    end

    def close; end

    #? lib/shop/base.rb:Shop.Base.touch lib/shop/base.rb:Shop.Base

    def self.both(one)
      item = one || Base.new
      item = Base.new
      item.touch
    end
  end
end
