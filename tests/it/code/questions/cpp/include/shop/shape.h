#pragma once

#include <memory>
#include <string>
#include <vector>

#define SHOP_EXPORT

namespace shop {

class Visitor;

/// Has an area.
class SHOP_EXPORT Shape {
public:
    explicit Shape(int sides);
    virtual ~Shape() = default;

    virtual int area() const;
    //? include/shop/shape.h:shop.Shape.area src/shape.cpp:shop.Shape.area
    int twice() const { return 2 * area(); }
    void accept(Visitor &visitor);

    static std::unique_ptr<Shape> make(int sides);

protected:
    int helper() const;

private:
    int sides_;
};

class Visitor {
public:
    virtual void visit(Shape &shape) = 0;
    int seen = 0;
};

namespace detail {

template <typename T>
class Box {
public:
    T *get_it();
    void fill(const T &value);

private:
    T held_;
};

template <typename T>
//? include/shop/shape.h:shop.detail.clean
void Box<T>::fill(const T &value)
{
    held_ = value;
    clean(value);
}

template <typename T>
//?
void clean(const T &) {}

} // namespace detail

int area_of(const Shape &shape);
int area_of(int sides);

} // namespace shop
