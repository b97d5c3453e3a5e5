#include <iostream>
#include "shop/square.h"

namespace sh = shop;
using shop::Visitor;

namespace app {

struct Count : Visitor {
    //? include/shop/shape.h:shop.Shape.twice
    void visit(shop::Shape &shape) override { seen += shape.twice(); }
    Count &self() { return *this; }
};

template <typename T>
struct Holder {
    //?
    void run(T &it) { it.go(); }
};

//? include/shop/shape.h:shop.Shape.make src/shape.cpp:shop.Shape.make include/shop/shape.h:shop.Shape.accept src/shape.cpp:shop.Shape.accept
int first()
{
    Count count;
    auto shape = shop::Shape::make(3);
    shape->accept(count);
    return count.seen;
}

//? include/shop/square.h:shop.Square include/shop/square.h:shop.Square.grown src/square.cpp:Square.grown include/shop/shape.h:shop.area_of src/shape.cpp:shop.area_of
int second()
{
    sh::Quad *square = new shop::Square();
    int grown = square->grown(2);
    return sh::area_of(*square) + grown;
}

//? src/main.cpp:app.third.twice src/main.cpp:app.first src/main.cpp:app.Count.self src/main.cpp:app.Count.visit
int third(shop::Shape &shape)
{
    auto twice = [](int value) { return value * 2; };
    Count count;
    count.self().visit(shape);
    return twice(first());
}

//?
int shadowed(int (*first)(int), std::string text)
{
    return first(1) + text.size();
}

} // namespace app

//? src/main.cpp:app.second src/main.cpp:app.third include/shop/square.h:shop.Square
int main()
{
    shop::Square square{};
    return app::second() + ::app::third(square);
}
