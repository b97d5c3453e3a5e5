#include "shop/square.h"

using namespace shop;

//? include/shop/square.h:shop.Square.area include/shop/shape.h:shop.Shape.helper src/shape.cpp:shop.Shape.helper
int Square::area() const
{
    return this->helper();
}

//? include/shop/square.h:shop.Square.grown include/shop/shape.h:shop.detail.Box.fill include/shop/shape.h:shop.Visitor.visit include/shop/shape.h:shop.Shape.area src/shape.cpp:shop.Shape.area
int Square::grown(int by)
{
    box_.fill(by);
    visitor_->visit(*this);
    return Shape::area() + by;
}
