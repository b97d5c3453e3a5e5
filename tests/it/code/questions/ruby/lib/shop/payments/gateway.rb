module Shop
  module Payments
    class Gateway
      # A class of the same name at the top is another one.

      #? lib/shop/payments/gateway.rb:Shop.Payments.Gateway.log_it lib/shop/reopened.rb:Shop.Payments.Gateway.audit

      def transfer(amount)
        log_it(amount)
        audit(amount)
      end

      #? lib/log.rb:Log.say

      def log_it(amount)
        ::Log.say(amount)
      end
    end
  end
end
