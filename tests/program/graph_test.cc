#include "compiler/program/graph.h"

#include <gtest/gtest.h>

#include "tests/program/build_program.h"
#include "tests/support/expect_error.h"

namespace kiln::program {
namespace {

using kiln::testing::expect_error;
using kiln::testing::kAdd;
using kiln::testing::kRelu;
using kiln::testing::ProgramBuilder;

Error refused(const ProgramBuilder& builder, std::string_view message) {
  return expect_error([&] { graph_of(builder.program); }, ErrorKind::InvalidArgument, message);
}

TEST(ProgramGraph, OrdersNodesByWhatTheyNeed) {
  ProgramBuilder net("net");
  net.input("x");
  const ValueId last = net.node("c", kAdd, {"b", "a"});
  net.node("b", kRelu, {"a"});
  net.node("a", kRelu, {"x"});
  net.program.outputs = {last};
  EXPECT_EQ(graph_of(net.program).order, (std::vector<NodeId>{2, 1, 0}));
}

TEST(ProgramGraph, LeavesOutWhatNoResultNeeds) {
  ProgramBuilder net("net");
  net.input("x");
  net.program.outputs = {net.node("a", kRelu, {"x"})};
  net.node("unused", kRelu, {"x"});
  EXPECT_EQ(graph_of(net.program).order, (std::vector<NodeId>{0}));
}

TEST(ProgramGraph, AGradientIsAsManyAsItIsWithRespectTo) {
  ProgramBuilder net("net");
  net.input("x");
  net.program.outputs = {net.node("a", kRelu, {"x"})};
  Node& node = net.program.nodes.emplace_back();
  node.name = "g";
  node.is_gradient = true;
  node.inputs = {net.value("a"), net.value("x")};
  node.outputs = {net.value("g"), net.value("h")};
  const Error error =
      refused(net, "node g makes 2 gradients, but names 1 values to differentiate with respect to");
  EXPECT_EQ(error.reason(), "PROGRAM_ARITY");
}

TEST(ProgramGraph, TellsACycleWithAllItsNodes) {
  ProgramBuilder net("net");
  net.input("x");
  net.program.outputs = {net.node("a", kAdd, {"x", "c"})};
  net.node("b", kRelu, {"a"});
  net.node("c", kRelu, {"b"});
  const Error error = refused(net,
                              "the nodes of net wait for each other: a needs c needs b needs a; "
                              "what one step hands to the next is a parameter");
  EXPECT_EQ(error.reason(), "PROGRAM_CYCLE");
  EXPECT_EQ(error.location().line, 1);
}

TEST(ProgramGraph, WalksChainsOfAnyLength) {
  ProgramBuilder net("net");
  net.input("x");
  std::string before = "x";
  for (int i = 0; i < 3'000; ++i) {
    const std::string name = "n" + std::to_string(i);
    net.node(name, kRelu, {before});
    before = name;
  }
  net.program.outputs = {net.value(before)};
  EXPECT_EQ(graph_of(net.program).order.size(), 3'000U);
}

TEST(ProgramGraph, RefusesToUpdateWhatIsNoParameter) {
  ProgramBuilder net("net");
  net.input("x");
  net.node("a", kRelu, {"x"});
  net.update("x", "a");
  EXPECT_EQ(refused(net, "net updates x, which is an input; only parameters change").reason(),
            "PROGRAM_UPDATE");
}

TEST(ProgramGraph, RefusesTwoUpdatesOfOneParameter) {
  ProgramBuilder net("net");
  net.parameter("w");
  net.node("a", kRelu, {"w"});
  net.node("b", kRelu, {"w"});
  net.update("w", "a");
  net.update("w", "b");
  refused(net, "net updates w twice");
}

TEST(ProgramGraph, RefusesAParameterThatBecomesAnother) {
  ProgramBuilder net("net");
  net.parameter("w");
  net.parameter("v");
  net.update("w", "v");
  refused(net, "w becomes v, which no node makes; copy it in a node of its own");
}

TEST(ProgramGraph, RefusesAValueThatNobodyMakes) {
  ProgramBuilder net("net");
  net.program.outputs = {net.node("a", kRelu, {"h"})};
  refused(net, "h of net is made by no node; make it an input, or add the node");
}

TEST(ProgramGraph, RefusesAValueThatTwoNodesMake) {
  ProgramBuilder net("net");
  net.input("x");
  net.program.outputs = {net.node("a", kRelu, {"x"})};
  net.node("b", kRelu, {"x"});
  net.program.nodes[1].outputs = net.program.nodes[0].outputs;
  refused(net, "a is made by two nodes, a and b; give each a value of its own");
}

TEST(ProgramGraph, RefusesAWrongNumberOfInputs) {
  ProgramBuilder net("net");
  net.input("x");
  net.program.outputs = {net.node("a", kAdd, {"x"})};
  refused(net, "node a names 1 values, but add reads 2 (A, B)");
}

TEST(ProgramGraph, RefusesValuesThatAreNotThere) {
  ProgramBuilder net("net");
  net.input("x");
  net.program.outputs = {net.node("a", kRelu, {"x"})};
  net.program.nodes[0].inputs = {7};
  refused(net, "node a names value 7, but net has 2 values");
}

TEST(ProgramGraph, RefusesADefinitionThatIsNotThere) {
  ProgramBuilder net("net");
  net.input("x");
  net.program.outputs = {net.node("a", kRelu, {"x"})};
  net.program.nodes[0].kernel = 4;
  refused(net, "node a applies definition 4, but net has 1");
}

TEST(ProgramGraph, RefusesANodeThatMakesWhatIsGiven) {
  ProgramBuilder net("net");
  const ValueId x = net.input("x");
  net.program.outputs = {net.node("a", kRelu, {"x"})};
  net.program.nodes[0].outputs = {x};
  refused(net, "node a makes x, which is an input of net");
}

TEST(ProgramGraph, RefusesToGiveBackWhatIsGiven) {
  ProgramBuilder net("net");
  net.program.outputs = {net.input("x")};
  refused(net, "output x of net is an input; give back what a node makes of it");
}

TEST(ProgramGraph, RefusesAProgramWithoutResults) {
  ProgramBuilder net("net");
  net.input("x");
  net.node("a", kRelu, {"x"});
  refused(net, "net has neither outputs nor updates, so there is nothing to run");
}

}  // namespace
}  // namespace kiln::program
