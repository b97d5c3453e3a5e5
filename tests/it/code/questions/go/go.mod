module example.com/shop // the shop

go 1.21
