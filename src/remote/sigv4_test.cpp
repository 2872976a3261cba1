#include "remote/sigv4.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>

#include "base/remote_files.h"
#include "remote/address.h"
#include "remote/credentials.h"
#include "remote/http.h"
#include "remote/listing_xml.h"
#include "remote/scheme.h"
#include "remote/url.h"

namespace tensordiff::remote {
namespace {

TEST(Sigv4, SignsTheExamplesOfAmazon) {
  // From the page that sigv4.cpp names; the key is Amazon's example.
  const SigningKey key{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "",
                       "us-east-1"};
  const Url file = parse_url("https://examplebucket.s3.amazonaws.com/test.txt").value();
  const std::vector<std::string> lines =
      signed_headers(file, key, "20130524T000000Z", {"range: bytes=0-9"});
  EXPECT_TRUE(lines.back().ends_with(
      "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"))
      << lines.back();
  const Url list = parse_url("https://examplebucket.s3.amazonaws.com/?prefix=J&max-keys=2").value();
  EXPECT_TRUE(signed_headers(list, key, "20130524T000000Z")
                  .back()
                  .ends_with("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69"
                             "dc6f7"));
}

TEST(Sigv4, SendsATokenSigned) {
  const Url url = parse_url("https://bucket.host/key").value();
  const std::vector<std::string> lines =
      signed_headers(url, {"id", "secret", "token", "here"}, "20130524T000000Z");
  EXPECT_NE(std::ranges::find(lines, "x-amz-security-token: token"), lines.end());
  EXPECT_NE(lines.back().find("x-amz-security-token"), std::string::npos);
  for (const std::string& line : lines) EXPECT_EQ(line.find("secret"), std::string::npos);
}

TEST(Url, RefusesWhatIsUnfit) {
  EXPECT_FALSE(parse_url("https://user:word@host/a").ok());
  EXPECT_FALSE(parse_url("https:///a").ok());
  EXPECT_FALSE(parse_url("https://host/a b").ok());
  EXPECT_FALSE(parse_url("https://host/a\nb").ok());
  EXPECT_FALSE(parse_url("ftp://host/a").ok());
  EXPECT_FALSE(parse_url("https://host:99x/a").ok());
  EXPECT_FALSE(parse_url("https://host/" + std::string(9000, 'a')).ok());
}

TEST(Url, HasItsParts) {
  const Url url = parse_url("HTTPS://Host:443/a/b?c=d#e").value();
  EXPECT_EQ(url.text(), "https://host/a/b?c=d");
  EXPECT_EQ(url.origin(), "https://host:443");
  EXPECT_EQ(parse_url("http://[::1]:8080").value().origin(), "http://[::1]:8080");
  EXPECT_TRUE(parse_url("http://[::1]:8080").value().loopback());
  EXPECT_TRUE(parse_url("http://127.0.0.1").value().loopback());
  EXPECT_FALSE(parse_url("http://127.0.0.1.example.com").value().loopback());
  EXPECT_EQ(shown("https://host/a?X-Amz-Signature=s#f"), "https://host/a");
  EXPECT_EQ(shown("https://user:word@host/a@b"), "https://host/a@b");
  EXPECT_EQ(shown("s3://bucket/what?"), "s3://bucket/what?");
}

TEST(Url, NamesOfFilesStayBelow) {
  EXPECT_TRUE(is_relative_name("a/b.c"));
  for (const char* name : {"", "/a", "a/", "a//b", "../a", "a/../b", ".", "a\\b", "a\nb"})
    EXPECT_FALSE(is_relative_name(name)) << name;
}

TEST(RemoteFiles, AddressesOfFiles) {
  EXPECT_TRUE(is_remote("s3://a/b"));
  EXPECT_FALSE(is_remote("a/b"));
  EXPECT_FALSE(is_remote("/a://b"));
  EXPECT_FALSE(is_remote("://b"));
  EXPECT_EQ(remote_parent("https://host/a/b?c=/d"), "https://host/a");
  EXPECT_EQ(remote_parent("https://host"), "https://host");
  EXPECT_EQ(remote_child("https://host/a?q", "b?c#d%e"), "https://host/a/b%3Fc%23d%25e");
  EXPECT_EQ(remote_child("s3://bucket/", "b?c"), "s3://bucket/b?c");
}

bool allowed(const char* text) {
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
    return is_public(reinterpret_cast<const sockaddr*>(&v4));
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
  return is_public(reinterpret_cast<const sockaddr*>(&v6));
}

TEST(Address, KnowsWhatIsPublic) {
  for (const char* text : {"8.8.8.8", "172.15.0.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111",
                           "64:ff9b::808:808", "::ffff:8.8.8.8"})
    EXPECT_TRUE(allowed(text)) << text;
  for (const char* text : {"127.0.0.1",
                           "10.1.2.3",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.168.0.1",
                           "169.254.169.254",
                           "0.0.0.0",
                           "100.64.0.1",
                           "224.0.0.1",
                           "255.255.255.255",
                           "::1",
                           "::",
                           "fe80::1",
                           "fd00::1",
                           "ff02::1",
                           "::ffff:127.0.0.1",
                           "::ffff:169.254.169.254",
                           "64:ff9b::7f00:1",
                           "2002:7f00:1::",
                           "2001:db8::1"})
    EXPECT_FALSE(allowed(text)) << text;
}

TEST(RemoteHttp, HashesAreToldByTheirForm) {
  EXPECT_EQ(hash_in("\"D41D8CD98F00B204E9800998ECF8427E\""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hash_in("\"d41d8cd98f00b204e9800998ecf8427e-12\""),
            "d41d8cd98f00b204e9800998ecf8427e-12");
  EXPECT_EQ(hash_in("\"" + std::string(64, 'a') + "\""), std::string(64, 'a'));
  EXPECT_EQ(hash_in("\"65f1a2b3-1c2d\""), "");  // Time and size, as nginx has it.
  EXPECT_EQ(hash_in("W/\"d41d8cd98f00b204e9800998ecf8427e\""), "");
  EXPECT_EQ(hash_in("\"d41d8cd98f00b204e9800998ecf8427e-x\""), "");
  EXPECT_EQ(hash_in(""), "");
}

TEST(Credentials, SectionsOfAFile) {
  const Sections sections = parse_sections(
      "x = 0\n[default]\naws_access_key_id = A = B\r\n# no\n[profile other]\nregion=here\n"
      "s3 =\n  endpoint_url = nested\n");
  EXPECT_EQ(sections.at("default").at("aws_access_key_id"), "A = B");
  EXPECT_EQ(sections.at("other").at("region"), "here");
  EXPECT_FALSE(sections.at("other").contains("endpoint_url"));
}

TEST(ListingXml, ReadsAPage) {
  const ListingPage page =
      parse_listing(
          "<?xml version='1.0'?><ListBucketResult xmlns='x'><IsTruncated>true</IsTruncated>"
          "<NextContinuationToken>t&amp;=</NextContinuationToken><Contents><Key>a&lt;&#x27;b</Key>"
          "<ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag><Size>12</Size></Contents>"
          "<Contents><Size>1</Size><Key>c</Key></Contents></ListBucketResult>")
          .value();
  ASSERT_EQ(page.objects.size(), 2U);
  EXPECT_EQ(page.objects[0].name, "a<'b");
  EXPECT_EQ(page.objects[0].size, 12U);
  EXPECT_EQ(page.objects[0].hash, "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(page.next, "t&=");
}

TEST(ListingXml, RefusesWhatIsWrong) {
  const auto message = [](std::string_view inside) {
    const Result<ListingPage> page =
        parse_listing("<ListBucketResult>" + std::string(inside) + "</ListBucketResult>");
    return page.ok() ? "" : page.error().message();
  };
  EXPECT_EQ(message(""), "");
  EXPECT_EQ(message("<Contents><Key>a</Key></Contents>"),
            "an entry of the listing has no name or size");
  EXPECT_EQ(message("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
            "an entry of the listing has no name or size");
  EXPECT_EQ(message("<Contents><Key>&x;</Key><Size>1</Size></Contents>"),
            "an entity in the listing that is not known");
  EXPECT_EQ(message("<IsTruncated>true</IsTruncated>"),
            "the listing goes on, but does not say where");
  EXPECT_FALSE(parse_listing("<html>").ok());
}

TEST(Scheme, TellsFilesFromFolders) {
  EXPECT_TRUE(schemes::hf.is_folder("org/name@rev"));
  EXPECT_FALSE(schemes::hf.is_folder("org/name/file"));
  EXPECT_TRUE(schemes::s3.is_folder("bucket"));
  EXPECT_TRUE(schemes::gs.is_folder("bucket/key/"));
  EXPECT_FALSE(schemes::s3.is_folder("bucket/key"));
  EXPECT_FALSE(schemes::https.is_folder("host/"));
  EXPECT_FALSE(address_of("ftp://host/a").ok());
  EXPECT_EQ(address_of("S3://b/k").value().scheme, &schemes::s3);
  for (const char* rest : {"Bucket/key", "a/b", "b..c/key", "host@other/key", "b?x/key"})
    EXPECT_FALSE(schemes::s3.file(rest).ok()) << rest;
  for (const char* rest : {"org", "org/na me", "../name", "org/name@a b", "org/name/../x"})
    EXPECT_FALSE(schemes::hf.list(rest).ok()) << rest;
}

}  // namespace
}  // namespace tensordiff::remote
