#include "shop/shape.h"
#include "shop/square.h"

using namespace std;

namespace shop {
namespace {

//?
int hidden(int value)
{
    return value + 1;
}

} // namespace

//? src/shape.cpp:shop.hidden include/shop/shape.h:shop.Shape.Shape
Shape::Shape(int sides) : sides_(hidden(sides))
{
    sides_ = hidden(sides);
}

//? include/shop/shape.h:shop.Shape.area include/shop/shape.h:shop.Shape.helper src/shape.cpp:shop.Shape.helper
int Shape::area() const
{
    return helper();
}

//? include/shop/shape.h:shop.Shape.helper
int Shape::helper() const
{
    return sides_;
}

//? include/shop/shape.h:shop.Shape.accept include/shop/shape.h:shop.Visitor.visit
void Shape::accept(Visitor &visitor)
{
    visitor.visit(*this);
}

//? include/shop/shape.h:shop.Shape.make include/shop/square.h:shop.Square
std::unique_ptr<Shape> Shape::make(int)
{
    return std::make_unique<Square>();
}

//? include/shop/shape.h:shop.area_of include/shop/shape.h:shop.Shape.area src/shape.cpp:shop.Shape.area
int area_of(const Shape &shape)
{
    return shape.area();
}

int area_of(int sides)
{
    return sides;
}

} // namespace shop
