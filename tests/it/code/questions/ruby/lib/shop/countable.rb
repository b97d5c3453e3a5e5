module Shop
  module Countable
    #? lib/shop/countable.rb:Shop.Countable.Point lib/shop/countable.rb:Shop.Countable.Point.dist

    def total
      Point.new(1, 2).dist
    end

    Point = Struct.new(:x, :y) do
      #? lib/shop/countable.rb:Shop.Countable.Point.x lib/shop/countable.rb:Shop.Countable.Point.y

      def dist
        x * y
      end
    end
  end
end
