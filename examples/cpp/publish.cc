// SPDX-License-Identifier: Apache-2.0
// publish COUNT: waits for COUNT subscribers (subscribe.cc) and publishes ten messages, which none of them copies.
#include <wherry/wherry.hpp>

#include <cstdlib>
#include <iostream>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    wherry::Publisher publisher;
    publisher.listen("wherry://*:2000");
    publisher.admit(std::strtoul(arguments[1], nullptr, 10));
    for (int number = 0; number < 10; ++number) {
      wherry::Loan loan;
      wherry::Result result = publisher.loan(loan, std::size_t{1} << 20);
      for (std::byte& byte : loan.bytes()) byte = static_cast<std::byte>(number);  // once, where it will be read
      if (result.ok()) result = publisher.publish(loan);
      if (result.failed()) std::cerr << result << '\n';
      if (result.failed()) return 1;
    }
  } catch (const wherry::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;  // the publisher's end: subscribers take what was published, then the end
}
