module Shop::Payments
  class Gateway
    #? lib/shop/payments/gateway.rb:Shop.Payments.Gateway.log_it

    def audit(amount)
      log_it(amount) unless amount.zero?
    end
  end
end
