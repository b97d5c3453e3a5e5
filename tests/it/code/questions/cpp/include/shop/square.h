#pragma once
#include "shape.h"

namespace shop {

class Square final : public Shape {
public:
    Square() : Shape(4) {}
    int area() const override;
    int grown(int by);

private:
    detail::Box<int> box_;
    std::shared_ptr<Visitor> visitor_;
};

using Quad = Square;

} // namespace shop
