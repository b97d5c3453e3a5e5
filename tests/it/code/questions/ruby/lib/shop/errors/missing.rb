module Shop
  module Errors
    class Missing < StandardError
      #? lib/shop/errors/missing.rb:Shop.Errors.Missing.describe

      def to_s
        describe
      end

      def describe = "missing"
    end
  end
end
