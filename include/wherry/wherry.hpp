// SPDX-License-Identifier: Apache-2.0
// Everything a program needs: wherry::listen, wherry::connect, wherry::Stream, wherry::Windows, wherry::Poller,
// wherry::Publisher, wherry::Subscriber, wherry::Mailbox, wherry::files.
#pragma once

#include <wherry/require_cxx20.hpp>

#include <wherry/address.hpp>
#include <wherry/error.hpp>
#include <wherry/files.hpp>
#include <wherry/framed.hpp>
#include <wherry/mailbox.hpp>
#include <wherry/message.hpp>
#include <wherry/plain.hpp>
#include <wherry/poller.hpp>
#include <wherry/result.hpp>
#include <wherry/stream.hpp>
#include <wherry/window.hpp>
